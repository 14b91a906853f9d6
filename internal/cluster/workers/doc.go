// Package workers has launches made on other machines over NATS: who is there, who is to do what, and
// what came of it.
//
// Promises:
//
//   - A worker makes a launch once under its key, however often it is sent: it keeps the keys on disk,
//     and answers a repeat with what it knows.
//   - A result counts once, and only if it is signed with the token of its order and the launch was not
//     given up. A worker that is silent for the lease has lost its launches; the engine launches anew,
//     under another key.
//   - Whoever begins to decide goes on with what workers do. It finds a launch by the heartbeat of the
//     worker that has its token; one that nobody shows is lost. A worker is asked to forget what the
//     journal does not have, and nothing else that this machine has not asked for yet.
//   - What a launch that was given up has made is kept, once, for people to look at, also where another
//     machine has sent it: its result is signed with the launch's token.
//   - A worker takes no request of an epoch below the highest that it has seen, and none that was not
//     signed by one of the keys it was given. A signature is for one worker, one answer's subject and one
//     time; what is repeated does nothing anew. Where nobody logs in with a key, nothing is signed.
//     Whoever begins to decide greets each worker at its next heartbeat.
//   - A heartbeat is a hint, which others can send in a worker's name. What shows that a launch goes on
//     is marked with the launch's token, and a worker is sent launches once it has answered.
//   - Two workers with one id are sent no new launch: both would make it.
//   - Whoever decides sends requests and reads what answers them. It answers nobody, so that no reply
//     subject of a worker leads anywhere.
//
// A [Desk] is the side that decides, of one journal: it is a launch.Afar. A [Post] is a worker's side.
// Heartbeats go to sluice.worker.<id>.beat, requests to sluice.worker.<id>.order. All that comes from
// the network is bounded and checked in wire.go.
//
// Reading order: wire.go (the messages), desk.go (who is there), twin.go (two with one id), assign.go, find.go,
// recorded.go, ask.go (requests), late.go (what comes too late), post.go (a worker), obey.go (what it does when
// asked), drain.go (both sides of draining), rights.go (what the servers permit a worker).
package workers
