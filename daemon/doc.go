// Package daemon runs the engine. Each repo has one queue, one goroutine that decides, one journal
// that is synced before anything acts, and the running effects. It also has the local API on a unix
// socket and its client.
//
// It reaches the world through the interface World; a simulation runs the same loop in its own
// world.
//
// Reading order: world.go (what the loop needs), core.go (decide, journal, apply; no goroutine),
// repo.go and repo_turn.go (the loop, and one turn of it), queue.go (how others reach it), clocks.go
// (when it wakes by itself), scan.go (reading all inboxes, or those that were hinted at), effects.go and
// job.go (running effects, and what they get), people.go and day.go (what is reported about rounds and
// the day's use), troubles.go (what is wrong with the records, old ones included), followers.go and
// export.go (the readers of the journal as it grows, and its readable copies; export_facts.go: the facts in
// them; export_mark.go: how far they got), server.go and server_repos.go (the service and its repos),
// api_repo.go and api_event.go (what it answers, and what people's requests become), status.go and
// status_waits.go, client.go, lock.go; where several machines keep the journal, lead.go (whose turn it is),
// relay.go and relay_file.go (what is said on a machine that only follows).
package daemon
