// Package retention removes what is over: Old finds the folders of runs that ended long ago and Remove removes them, for `sluice
// clean`; Forget puts aside what is left of runs that a repaired journal does not know any more. The journal is never touched.
package retention
