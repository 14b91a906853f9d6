// Package mcp gives an orchestrating agent what `sluice next` and `sluice signal` give a person, as tools of the Model
// Context Protocol on standard input and output: list, next, claim, context, signal, evaluate.
//
// What an agent can do through it is what an offered step needs done, and no more. It never
// decides: a gate is evaluated by sluice, after the step's signal, and the agent waits for what
// came of it. No tool says pass, fail or veto, and none can be talked into it: a signal is taken
// only as the word of a step that is on offer and claimed.
//
// Everything that comes from the agent is bounded (a message, a text, how long a call waits, how
// many calls there are at a time) and checked as a signal file would be. Nothing is kept between
// two calls: the daemon may be started again, and so may the orchestrator.
package mcp
