// Package journal keeps the record of a repo: an append-only file of JSON lines. Each line holds
// one event and the facts decided on it. Events and facts are raw JSON here, not
// interpreted. FORMAT.md, beside this file, specifies the format.
//
// Promises:
//
//   - [Log.Append] returns nil only after its records are written and synced. No option turns the
//     sync off.
//   - Each line holds the SHA-256 of the line before it and a sum of its own. A changed, missing,
//     doubled or moved line is found.
//   - [Open] cuts off a torn last line and keeps its bytes aside. Such a line was interrupted by a
//     crash and never acknowledged. Any other fault is a [*Damage]: Open changes nothing, and a
//     person decides with [Repair].
//   - A failed write is undone and returned as [ErrStalled]; the same append may be retried. A
//     failed sync is [ErrSyncFailed] and final: the kernel may have dropped the pages, so a second
//     sync could succeed without writing them.
//   - With a snapshot, a start reads only the records after it. [Log.CheckPast] checks the earlier
//     ones later.
//   - [OpenRead] changes nothing and may run beside the writer.
//
// Reading order: record.go (a line), scan.go (reading lines), log.go and open.go (writing them),
// replay.go, snapshot.go, past.go, verify.go, repair.go, export.go (the readable copies in the
// repo). fs.go is the disk's interface; tests and the simulation replace it with a disk that fails.
//
// Only one process may write a journal at a time; locking is the caller's job. Readers ([OpenRead],
// [Verify], [VerifyExport]) need no lock.
package journal
