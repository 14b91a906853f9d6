// Package triggers sees what starts runs by itself: files, pushes and issues. It reports what it sees
// (engine.Fired), as often as it likes: the engine lets each key count once, ever.
//
// It looks for a trigger as long as the engine owes that (engine.DoListen), and for no other. A
// look that fails is noted and tried again; what it misses meanwhile it sees later, for it compares
// what is there with what it has reported, and never relies on an event.
//
// Reading order: triggers.go, files.go, push.go, issues.go.
package triggers
