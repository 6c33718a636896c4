# shellcheck shell=sh disable=SC2154  # its settings stand in front of it
# Readies a node for one AllReduce that mpirun starts over SSH; run as root, with the settings and the
# run's keys in front of it. An sshd for this run alone listens on $port and lets in $user, who starts
# ranks as a plain user ($uid), away from the login's home: mpirun's daemon crashes in a folder that it
# can't read (Open MPI 5.0.7). It ends after $limit_s seconds where nothing ends it before.
set -eu
mkdir -m 711 "$folder"
umask 077
printf '%s' "$key" >"$folder/key"
printf '%s' "$host_key" >"$folder/host_key"
chown "$uid:$uid" "$folder/key"
umask 022
printf '%s' "$authorized" >"$folder/authorized_keys"
printf '%s' "$known" >"$folder/known_hosts"
printf '%s' "$hosts" >"$folder/hosts"
cat >"$folder/agent" <<END
#!/bin/sh
# Runs a command of mpirun on another node as a plain user. usage: agent HOST COMMAND..
host=\$1
shift
quoted=\$(printf '%s' "\$*" | sed "s/'/'\\\\\\\\''/g")
exec ssh -F none -p $port -l $user -i $folder/key -o IdentitiesOnly=yes -o BatchMode=yes \\
  -o StrictHostKeyChecking=yes -o UserKnownHostsFile=$folder/known_hosts -o HostKeyAlias=allreduce \\
  -o ConnectTimeout=10 -o LogLevel=ERROR -- "\$host" \\
  'cd / && \$([ "\$(id -u)" = 0 ] || echo sudo -n) setpriv --reuid=$uid --regid=$uid --clear-groups' \\
  "env HOME=/ SHELL=/bin/sh sh -c '\$quoted'"
END
chmod 755 "$folder/agent"
cat >"$folder/sshd_config_gcluster_smoke" <<END
Port $port
AuthorizedKeysFile $folder/authorized_keys
HostKey $folder/host_key
PidFile none
StrictModes no
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowUsers $user
LogLevel ERROR
END
mkdir -p /run/sshd
sshd=$(command -v sshd || echo /usr/sbin/sshd)
setsid timeout "$limit_s" "$sshd" -D -e -f "$folder/sshd_config_gcluster_smoke" \
  </dev/null >"$folder/sshd.log" 2>&1 &
for _ in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.2
  if ! kill -0 $! 2>/dev/null; then
    cat "$folder/sshd.log" >&2
    exit 1
  fi
  ! ssh-keyscan -p "$port" -T 2 127.0.0.1 2>/dev/null | grep -q . || exit 0
done
echo "its sshd of the run doesn't listen on port $port" >&2
exit 1
