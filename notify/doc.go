// Package notify tells a person that something happened or that a decision is
// theirs: on the desktop, by a command of the person's own, by a webhook, and
// always by a log line. [With] takes any other [Channel].
//
// A notice is a courtesy, never a condition of anything: whatever a channel
// does (hang, crash, flood, fork), [Notifier.Send] comes back in about six
// seconds and says of each channel whether it worked and if not, why. Gates of
// level notify count their veto window from then, so "was told" and "could not
// be told" are both facts worth recording.
//
// The desktop is reached only from a process of our own binary ([HelperMain],
// run as `sluice notify-helper`), which a [Desk] keeps: libraries for it wait
// for ever for a notification daemon that owns its name and does not answer,
// and where no session bus is known some start one through dbus-launch, which
// then outlives everybody. So the helper is not started where there is no bus,
// connects to that bus only, gives every call up after four seconds, and is
// killed with its process group where it has not answered after five. Its death
// loses nothing: notices that stand until they are dismissed are shown again.
//
// A pressed button comes out as a [Press]. What it means is for others to say:
// this package knows neither gates nor answers.
//
// All text in a notice is taken for foreign (agents wrote most of it): see
// [Clean].
package notify
