// Package forge asks a forge (GitHub) through gh: pull requests, checks, reviews, comments and
// issues, as plain values.
//
// Promises: gh runs with the person's environment, so with their login and their hosts, and outside
// any repo. Each call is bounded in time and in bytes, and is never retried here: a Fault says what
// went wrong and whether it may pass by itself. Answers that have not changed cost a conditional
// request only. After a rate limit no call is made until the forge allows it again. A list longer
// than what is read is a Fault, never a shorter list. Texts are as the forge sent them: whoever
// shows or stores one cleans it first.
package forge
