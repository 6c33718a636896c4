// etcd: the server, etcdctl and etcdutl in one binary, chosen by the name it is called with.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "etcd":
		etcdmain.Main(os.Args)
	case "etcdctl":
		ctlv3.MustStart()
	case "etcdutl":
		root := &cobra.Command{Use: "etcdutl", Short: "Works on the files of an etcd that does not run."}
		root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "simple, json or table")
		root.AddCommand(
			etcdutl.NewDefragCommand(),
			etcdutl.NewSnapshotCommand(),
			etcdutl.NewHashKVCommand(),
			etcdutl.NewVersionCommand(),
		)
		if err := root.Execute(); err != nil {
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "call me as etcd, etcdctl or etcdutl")
		os.Exit(2)
	}
}
