//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it reads Linux's clocks and /proc: run it on Linux")
	os.Exit(1)
}
