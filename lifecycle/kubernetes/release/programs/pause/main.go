// pause holds a pod's namespaces open: it reaps what is orphaned there and ends when it is told to.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for {
		if received := <-signals; received != syscall.SIGCHLD {
			os.Exit(0)
		}
		for {
			gone, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if gone <= 0 || err != nil {
				break
			}
		}
	}
}
