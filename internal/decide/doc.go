// Package decide submits a person's decision at a gate: Give sends it to the process that serves
// the repo, or else writes a file for the next one, signed if the gate requires it. Review has the
// person comment on the changes in their editor. Package approval has what is signed, form asks for
// answers, review has the sheet of changes.
//
// Reading order: decide.go, sign.go, form.go, review.go.
package decide
