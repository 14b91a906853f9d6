package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"sluice/internal/serve"
)

func main() {
	if os.Getenv(serve.ProfileFolder) == "" {
		runtime.MemProfileRate = 0 // saves the profiler's tables in each process
	}
	if code, ours := serve.Inner(os.Args[1:], os.Stdin); ours {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
