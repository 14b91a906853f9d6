// Package pulls has the pull request of a run: pushed, opened and brought up to date (open.go,
// body.go), judged by its checks and reviews (judge.go, verdict.go), and followed for people's
// words, for its end and for the issue that the run was started for (watch.go, word.go, issue.go).
//
// Promises: a run has one pull request, found by its branch also after a kill; a pull request of a
// fork is never the run's. A push moves the branch only from a commit that sluice pushed itself or
// from which the new one descends: what somebody else pushed stays, and stops the gate. A verdict
// is about one commit: checks and reviews of another never count. A comment counts once, and never
// once it was edited; what is said of it is what is on the record. All calls are made by the
// goroutine of an effect, so a forge that is away holds up nothing else.
package pulls
