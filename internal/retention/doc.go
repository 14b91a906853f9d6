// Package retention removes the leftovers of runs, for `sluice clean` and after a repair. Old lists the
// folders of runs that ended long ago, Remove removes them. Forget moves aside the records of runs
// that a repaired journal no longer has. The journal is never changed.
package retention
