// Package audit verifies the record of a repo: the chain of the journal, its readable exports
// against it (audit.go), the signed answers on record against what was signed (signed.go), and
// checkpoints that were kept elsewhere (checkpoint.go). It changes nothing.
package audit
