// Package notify informs a person that something happened or that a decision is theirs: on the
// desktop, with the person's own command, by a webhook, and always with a log line. [Options] take
// any other [Channel].
//
// A notice is a courtesy, never a precondition. Whatever a channel does (hang, crash, flood, fork),
// [Notifier.Send] returns in about six seconds with the result of each channel. Gates of level
// notify count their veto window from then, so "was told" and "could not be told" are both worth
// recording.
//
// Only a helper process of our own binary ([HelperMain], run as `sluice notify-helper`) talks to
// the desktop; a [Desk] manages it. Desktop libraries wait forever for a notification daemon that
// owns its name and does not answer. Without a session bus, some start one through dbus-launch,
// which then outlives everyone. So the helper is not started without a bus, connects only to that
// bus, gives up a call after four seconds, and is killed with its process group after five seconds
// without an answer. Its death loses nothing: notices that stay until they are dismissed are shown
// again.
//
// A pressed button is returned as a [Press]. Its meaning is up to others: this package knows
// neither gates nor answers.
//
// All text in a notice is treated as foreign (agents wrote most of it): see [Clean].
package notify
