// Package notify tells a person that something happened or that a decision is
// theirs: by a desktop notification, by a command of the person's own, and
// always by a log line. A webhook is to come as one more [Channel]; [With]
// takes it.
//
// A notice is a courtesy, never a condition of anything: whatever a channel
// does (hang, crash, flood, fork), [Notifier.Send] comes back in about six
// seconds and says of each channel whether it worked and if not, why. Gates of
// level notify count their veto window from then, so "was told" and "could not
// be told" are both facts worth recording.
//
// The desktop is reached only from a short-lived process of our own binary
// ([HelperMain], run as `sluice notify-helper`). The library behind it has no
// time limit and waits for ever for a notification daemon that owns its name
// and does not answer; where no session bus is known it starts one through
// dbus-launch, which then outlives everybody. So the helper is ended with its
// whole process group after five seconds, is not started where there is no
// bus, and has no PATH through which it could start anything on a D-Bus
// system.
//
// All text in a notice is taken for foreign (agents wrote most of it): see
// [Clean].
package notify
