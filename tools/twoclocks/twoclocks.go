// Package twoclocks makes times whose two clocks differ, for tests.
package twoclocks

import (
	"time"
	"unsafe"
)

// Time returns a time as time.Now gives it: of the clock on the wall, and of the steady one, which
// stands still while the machine sleeps and is never set.
func Time(wall time.Time, steady time.Duration) time.Time {
	const both = 1 << 63 // in package time: the seconds since 1885 are with the nanoseconds,
	since := wall.Unix() - time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	words := (*[2]uint64)(unsafe.Pointer(&wall))
	words[0] = both | uint64(since)<<30 | uint64(wall.Nanosecond())
	words[1] = uint64(steady) // and this is the steady clock
	return wall
}
