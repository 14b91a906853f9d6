// Package cluster keeps the journals of repos in streams of NATS JetStream, beside their local
// files, so that another machine can go on when one dies.
//
// Promises:
//
//   - The stream decides. A group of lines is acknowledged once the file and the stream have it. It is
//     appended with the expected last sequence and without a message id. An error proves nothing, and
//     a read proves nothing about the end of the stream: only an acknowledged append does.
//   - An epoch is a record of the journal. Who is deposed cannot append any more. A key, renewed
//     while a machine leads, only shows that it is alive.
//   - A daemon never begins a stream; [Begin] does, for a person. A stream that is gone, empty, cut or
//     edited is refused with exit code 78, and nothing is written.
//   - Who cannot read a record, because a newer release has written it, follows and appends nothing.
//   - What [Packs] stores is read under its digest until it fits, or it is not returned.
//
// A [Member] is one machine's part in one journal; it is the daemon's Lead. Its Take follows the
// stream into the local file until this machine leads; then its Copy takes what the daemon appends.
// One goroutine calls Take, Copy and Close; any may call the rest.
//
// What people say on a machine that follows is passed on by request and reply, on a subject of the
// journal ([Member.Say], [Member.Hear]); whoever answers does so only below _INBOX.
//
// Reading order: connect.go (the servers), stream.go (one stream: read, append), lease.go (who is
// alive), member.go (follow, take the lead), copy.go (append), relay.go (what people say elsewhere),
// begin.go (init), packs.go and spool.go (what the machines need beside the journal), compare.go
// (audit), mark.go (which repos belong to a cluster).
package cluster
