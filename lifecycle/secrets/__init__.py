"""Secrets of a cluster: made once, stored only encrypted for a data key that age or sops wraps.

- `SecretVault.open(store, spec.secrets, cluster_id, keys_dir)`: `ensure`, `version`, `reveal`,
  `materialise`, `forget_all`; its `keyring` holds the data keys.
- `ciphertexts.reencrypt`: rotates the data key. `references`: reads secrets that the spec names.
"""
