#!/bin/sh
# Prints "export NAME=value" for what jobs on this node are given (/etc/gcluster/job-environment.d) and
# don't say themselves; the value of NAME+ goes before what NAME has. Slurm's task prolog runs it for
# each task and takes the lines as they are; shells of people evaluate them ("-q": quoted for them).
for file in /etc/gcluster/job-environment.d/*; do
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
        [ "${1:-}" != -q ] || value="'$value'"
        echo "export $name=$value"
    done <"$file"
done
