package daemon

import (
	"maps"

	"sluice/engine"
)

// dayReport passes the day's use on to RepoOptions.Spent.
type dayReport struct {
	used *engine.Day  // what Spent last received
	most engine.Spend // the day's budget then
}

// changed returns the day's use if Spent does not have it.
func (d *dayReport) changed(now engine.Day, most engine.Spend) *engine.Day {
	if d.used != nil && d.most == most && d.used.Day == now.Day && d.used.Usage == now.Usage &&
		len(d.used.Told) == len(now.Told) {
		return nil
	}
	now.Told = maps.Clone(now.Told)
	d.used, d.most = &now, most
	return d.used
}
