// agents: our own two commands alone, where the rest of Kubernetes is the published one.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "routed-cni":
		routedCNI()
	case "simulated-gpu":
		simulatedGPU()
	default:
		fmt.Fprintln(os.Stderr, "call me as routed-cni or simulated-gpu")
		os.Exit(2)
	}
}
