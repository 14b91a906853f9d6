// Package web is the page: inbox, runs, gates, transcripts, a start form and history, for a browser on
// this machine or a person's phone. It reads and decides through the daemon's client, in the words of
// package render.
//
// Promises: a request counts only at the page's own name, from the page itself, with the cookie of a
// login (guard.go, login.go). An answer is to the round and the commit that its page showed, and a
// pass is asked for once more (decide.go). One function makes hidden characters visible in all that
// is shown (page.go). A browser on another device reads, decides only by what a passkey
// signs, and steers only soon after one was used (signed.go). Every page reads and decides without
// JavaScript, but for passkeys; with it, parts follow the journal (stream.go), and lines are added to a
// transcript that grows (grow.go). Webhooks come in here too (hooks.go): the engine counts each signed
// body once.
//
// Reading order: server.go, limit.go, guard.go, login.go, page.go, repos.go, hub.go and stream.go, passkey.go,
// register.go, signed.go, draft.go; then a file for each page.
package web
