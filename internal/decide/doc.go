// Package decide submits a person's decision at a gate: Give sends it to the process that serves
// the repo, or else writes a file for the next one, signed if the gate requires it. Here lets the
// person at the terminal decide by a key what was just shown. Package press decides which keys
// count, approval has what is signed, form asks for answers.
//
// Reading order: decide.go, sign.go, form.go, here.go.
package decide
