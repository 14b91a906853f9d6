// Package gates holds what goes into a judgement and what comes out of it: the prompts of steps and reviewers, the
// verdicts and answers they give back, the criteria a machine can check, and the retry context that tells the next
// attempt what was wrong.
//
// Two things are kept apart everywhere. What the project's own spec and settings say is the task, and stands in a
// prompt as it is. What an agent, a reviewer, a command or a file of the worktree says is data ([Data]): it is cleaned
// of what nobody sees, bounded, and fenced by a delimiter that does not occur in it.
//
// A verdict is read from the reviewer's own words only ([ReadVerdict]), in one fixed order; the first place that says
// anything decides, and what it says is strict or it is an error that is fed back ([Correction]). Nothing is guessed
// and nothing falls through to a kinder reading: a verdict that cannot be read never passes.
//
// What of the files judges the work ([Law]): a step that changed some of it has a person look.
//
// Everything is bounded; the limits are constants. No function starts a process or writes a file.
package gates
