"""Writing a fixed spec: whole, with what belongs to the file kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError, rewrite


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Return a file with carriage returns and its own permissions."""
    path = tmp_path / "spec.yaml"
    path.write_bytes("ä: 1\r\nb: 2\n".encode())
    path.chmod(0o640)
    return path


def test_the_file_holds_the_new_text_and_keeps_its_permissions(spec: Path) -> None:
    rewrite(str(spec), "ä: 1\r\nb: 2\n", "ä: 1\r\nb: 3\n")
    assert spec.read_bytes() == "ä: 1\r\nb: 3\n".encode()
    assert spec.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in spec.parent.iterdir()] == ["spec.yaml"]


def test_a_link_stays_a_link(spec: Path) -> None:
    link = spec.with_name("link.yaml")
    link.symlink_to(spec.name)
    rewrite(str(link), "ä: 1\r\nb: 2\n", "new\n")
    assert link.is_symlink()
    assert spec.read_bytes() == b"new\n"


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    rewrite(str(path), "a: 1\n", "a: 2\n")
    assert path.read_bytes() == b"\xef\xbb\xbfa: 2\n"


def test_a_file_that_changed_in_the_meantime_is_left_as_it_is(spec: Path) -> None:
    with pytest.raises(LifecycleError) as refused:
        rewrite(str(spec), "something else\n", "new\n")
    assert refused.value.diagnostics[0].code == "GC952"
    assert spec.read_bytes() == "ä: 1\r\nb: 2\n".encode()


def test_a_file_that_is_gone_is_not_recreated(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rewrite(str(tmp_path / "gone.yaml"), "", "new\n")
    assert list(tmp_path.iterdir()) == []
