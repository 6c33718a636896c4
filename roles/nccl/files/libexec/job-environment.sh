#!/bin/sh
# Prints "export NAME=value" for what jobs on this node are given (/etc/gcluster/job-environment.d) and
# don't set themselves; the value of NAME+ is put before NAME's. Slurm's task prolog runs it for
# each task and takes the lines as they are; users' shells evaluate them ("-q": quoted for them).
# Values that the node must resolve are written "@rails ELSE" and "@interface ELSE".

# Print the rails that the health check keeps, as NCCL_IB_HCA has them ("=": exactly these); the interface
# of the node's own address, on the route to a reserved address (RFC 5737); ELSE where they aren't known.
resolve() {
    found=
    case $1 in
        @rails*) found=$(sed -n 'H; $ { x; s/\n/,/g; s/^,/=/p; }' "${GCLUSTER_RAILS:-/var/lib/gcluster/rails}" 2>/dev/null) ;;
        @interface*) found=$(ip -o -4 route get 192.0.2.1 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/=\1/p') ;;
    esac
    [ -n "$found" ] || case $1 in *' '*) found=${1#* } ;; esac
    echo "$found"
}

for file in "${GCLUSTER_JOB_ENVIRONMENT:-/etc/gcluster/job-environment.d}"/*; do
    [ -r "$file" ] || continue
    while IFS= read -r line; do
        case $line in '' | '#'* | *=*) ;; *) continue ;; esac
        name=${line%%=*} value=${line#*=}
        case $name in
            '' | '#'*) continue ;;
            *+)
                name=${name%+}
                eval "had=\${$name-}"
                case ":$had:" in *":$value:"*) continue ;; esac
                value=$value${had:+:$had}
                ;;
            *)
                eval "had=\${$name+set}"
                [ -z "$had" ] || continue
                ;;
        esac
        case $value in @*)
            value=$(resolve "$value")
            [ -n "$value" ] || continue
            ;;
        esac
        [ "${1:-}" != -q ] || value="'$value'"
        echo "export $name=$value"
    done <"$file"
done
