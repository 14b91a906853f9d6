package main

import (
	"context"
	"os"
	"runtime"

	"sluice/internal/personal"
	"sluice/internal/serve"
)

func main() {
	if os.Getenv(serve.ProfileFolder) == "" {
		runtime.MemProfileRate = 0 // saves the profiler's tables in each process
	}
	if code, ours := serve.Inner(os.Args[1:], os.Stdin); ours {
		os.Exit(code)
	}
	ctx, stop := personal.Interrupted(context.Background())
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
