#!/bin/bash
# A virtual environment with PyTorch as Debian has it (for processors; about 200 MB) in a folder that all
# nodes see. On one of the nodes: torch-env.sh /scratch/envs/torch   then, in a workload, venv: /scratch/envs/torch
set -euo pipefail
folder=${1:?the folder, on storage that all nodes see}
root=${folder%/*}/debian-${folder##*/} # beside it: there pip leaves things alone
libraries=$root/usr/lib machine=$root/usr/lib/$(uname -m)-linux-gnu packages=$root/usr/lib/python3/dist-packages
mkdir -p "$folder/debs/partial" "$root"

apt-get -qq update
apt-get -qq --yes --download-only --no-install-recommends \
  -o Dir::Cache::archives="$folder/debs" -o APT::Sandbox::User=root install python3-torch python3-pip
for package in "$folder"/debs/*.deb; do dpkg-deb --extract "$package" "$root"; done
rm -r "$folder/debs"

# Debian's PyTorch is built without libuv, which each store requests unless it is told otherwise.
cat >> "$packages/torch/distributed/__init__.py" <<'END'

if is_available():
    _create = TCPStore.__init__

    def _without_libuv(self, *words, **named):
        _create(self, *words, **{**named, "use_libuv": False})

    TCPStore.__init__ = _without_libuv
END

# As an installed package is: otherwise each process of those who may not write here compiles it at each start.
python3 -m compileall -q -j 0 -x '/tests?/' "$packages" || true # some files are templates

python3 -m venv --without-pip --system-site-packages "$folder"
python3=$folder/bin/python3
echo "$packages" > "$("$python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/debian.pth"
cat >> "$folder/bin/activate" <<END
export LD_LIBRARY_PATH="$machine:$libraries:$machine/blas:$machine/lapack\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export OMP_NUM_THREADS="\${OMP_NUM_THREADS:-1}"
END
printf '#!/bin/sh\nexec "%s" -m torch.distributed.run "$@"\n' "$python3" > "$folder/bin/torchrun"
printf '#!/bin/sh\nexec "%s" -m pip "$@"\n' "$python3" > "$folder/bin/pip"
chmod +x "$folder/bin/torchrun" "$folder/bin/pip"

# shellcheck source=/dev/null
. "$folder/bin/activate"
python3 -c 'import torch, sys; print("PyTorch", torch.__version__, "for Python", sys.version.split()[0])'
