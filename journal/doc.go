// Package journal keeps the one truth of a repo: an append-only file of JSON
// lines, one line per event taken in, with the facts that were decided on it.
// FORMAT.md beside this file is the format as a document.
//
// It knows nothing of what the events and facts mean; they are raw JSON here.
//
// What it promises:
//
//   - [Log.Append] returns nil only after its records are written and synced.
//     No option turns the sync off.
//   - Every line is chained to the line before it by SHA-256 and carries a sum
//     of its own, so that a changed, missing, doubled or moved line is found.
//   - [Open] cuts off a torn last line (a write that a crash interrupted, and
//     so was never acknowledged) and keeps its bytes aside. Anything else that
//     is wrong is a [*Damage]: then Open changes nothing, and a person decides
//     with [Repair].
//   - A failed write is undone and told as [ErrStalled]; the same append may
//     be tried again. A failed sync is [ErrSyncFailed] and final: after it the
//     kernel may have dropped the pages, so that a second sync would lie.
//   - A snapshot of the state makes a start cost the records after it only;
//     [Log.CheckPast] holds those before it to the chain afterwards.
//   - [OpenRead] changes nothing, and may run beside the one that writes.
//
// Reading order: record.go (a line), scan.go (reading lines), log.go and
// open.go (writing them), replay.go, snapshot.go, past.go, verify.go, repair.go,
// export.go (the readable copies in the repo). fs.go is the seam to
// the disk, under which the tests and the simulation put one that fails.
//
// One process writes a journal at a time: the lock is the caller's. Readers
// ([OpenRead], [Verify], [VerifyExport]) need no lock.
package journal
