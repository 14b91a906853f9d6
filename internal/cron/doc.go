// Package cron reads cron lines and says when they come next. Lines have five fields (minute, hour,
// day of month, month, day of week) or are one of @hourly, @daily, @weekly, @monthly and @yearly.
//
// A line is of a zone's wall clock, and each of its minutes comes once: one that the clock shows
// twice in autumn comes the first time, one that it leaves out in spring comes right after the gap.
//
// The binary has the time zones of Go's release, for machines without their own.
package cron
