// Package evidence carries what a run's gates decided to those who have only its commits.
//
// Attest reads the journal and writes a signed statement about one run: an in-toto statement
// (statement.go) in a DSSE envelope (envelope.go), as a git note on the commits and as a file. It says
// no more than the journal holds (attest.go), and only of commits that have the run's work, which git
// is asked for (commits.go).
//
// Verify needs a git checkout with the notes, and a policy (policy.go): no daemon and no state. It
// answers for each commit of a range whether it went through the gates that the policy requires
// (verify.go, judge.go). Nothing in a judged commit takes part in the answer.
package evidence
