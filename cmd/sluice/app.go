package main

import (
	"io"

	"sluice/internal/console"
)

// app is what every command has beside its console: where it works, and how what serves repos is timed.
type app struct {
	console.Console        // a copy of the app may write elsewhere
	timing          timing // of what serves repos
	dir             string

	throwAway bool // the repo is removed when the command ends
}

func newApp(env []string, in io.Reader, out, err io.Writer) *app {
	return &app{Console: *console.New(env, in, out, err)}
}
