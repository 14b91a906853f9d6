// Package prompt writes what an agent is asked: the prompt of a step ([Step]), of a review ([Review]), and the file
// that says to the next attempt what was wrong ([RetryContext]).
//
// # What is promised
//
// What the project's own spec and settings say is the task, and stands in a prompt as it is. What an agent, a
// reviewer, a command, a person or a file of the worktree says is data: it stands revealed, bounded and fenced
// ([sluice/internal/text.Data]), so that nothing in it passes for the task. Of a history the newest is shown; what is
// left out is counted. A prompt has at most [Max] bytes. A role's own template moves the sections of a prompt; it
// removes none.
//
// # Where to read first
//
// step.go and review.go name the sections, in order; sections.go has those that both share. template.go has the roles'
// templates and puts the sections in their places; read.go reads a project's own. values.go puts what others said into
// a task. signal.go says how a step is reported done. After a failed gate, retry.go writes the retry-context file, and
// step.go shows these files in the next prompt; sent.go shows the words of routes, which are no failures. page.go
// writes Markdown. Packages collect and work fill all of these.
package prompt
