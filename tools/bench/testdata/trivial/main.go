// Command trivial is the least that a Go program does: it says its version.
package main

import "os"

func main() { os.Stdout.WriteString("trivial 1\n") }
