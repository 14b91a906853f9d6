// Package decide has a person's decision at a gate taken in: Give by the process that serves the repo, else by a file for the one
// that will, signed where the gate wants it. Here lets the person at the terminal decide what was just shown, by a key. Which
// keys count is internal/press's, what is signed internal/approval's, how an answer is asked for internal/form's.
//
// Reading order: decide.go, sign.go, form.go, here.go.
package decide
