package program

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// justOver is how long a past time of day is still taken as today's, not tomorrow's.
const justOver = 30 * time.Minute

// Furthest is the longest credible wait for a reset.
const Furthest = 8 * 24 * time.Hour

// epoch converts seconds since 1970; zero if that cannot be the end of a limit.
func epoch(seconds float64, now time.Time) time.Time {
	if math.IsNaN(seconds) || seconds <= 0 || seconds > 1e11 {
		return time.Time{}
	}
	return believed(time.Unix(int64(seconds), 0), now)
}

func believed(at, now time.Time) time.Time {
	if at.After(now.Add(Furthest)) || at.Before(now) {
		return time.Time{}
	}
	return at
}

const (
	span = `(?:(\d{1,3})\s*d(?:ays?)?\b)?,?\s*(?:(\d{1,3})\s*h(?:ours?|rs?)?\b)?,?\s*` +
		`(?:(\d{1,4})\s*m(?:in(?:ute)?s?)?\b)?,?\s*(?:(\d{1,6}(?:\.\d+)?)\s*s(?:ec(?:ond)?s?)?\b)?`
	zone = `(?:\s*\(([A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)*)\))?`
)

// resetIn finds the end of a limit in a message: an epoch ("limit reached|1752345600",
// "resets_at":1752345600), a span ("try again in 2 days 17 hours 14 minutes"), a date ("try again
// at Jul 10th, 2026 11:52 AM"), a time of day ("resets 2pm (Asia/Shanghai)"), or zero.
func resetIn(text string, now time.Time) time.Time {
	if m := find(`(?:\||"resets_?[aA]t"\s*:\s*)(\d{9,11})\b`, text); m != nil {
		seconds, _ := strconv.ParseFloat(m[1], 64) // digits
		return epoch(seconds, now)
	}
	if m := find(`(?i)(?:again|resets?) in (?:about )?`+span, text); m != nil {
		var total time.Duration
		for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
			n, _ := strconv.ParseFloat(or(m[i+1], "0"), 64) // digits
			total += time.Duration(n * float64(unit))
		}
		if total > 0 {
			return believed(now.Add(total), now)
		}
	}
	if m := find(`(?i)(?:again|resets?) at ([A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th)?,? (\d{4}) (\d{1,2}:\d{2} [AP]M)`,
		text); m != nil {
		if at, err := time.ParseInLocation("Jan 2 2006 3:04 PM", m[1]+" "+m[2]+" "+strings.ToUpper(m[3]),
			now.Location()); err == nil {
			return believed(at, now)
		}
	}
	if m := find(`(?i)(?:again at|resets?(?: at)?) (\d{1,2})(?::(\d{2}))?\s*([ap]m)`+zone, text); m != nil {
		return timeOfDay(m, now)
	}
	return time.Time{}
}

// timeOfDay returns the next moment with that time of day.
func timeOfDay(m []string, now time.Time) time.Time {
	loc := now.Location()
	if m[4] != "" {
		named, err := time.LoadLocation(m[4])
		if err != nil {
			return time.Time{}
		}
		loc = named
	}
	hour, _ := strconv.Atoi(m[1])            // digits
	minute, _ := strconv.Atoi(or(m[2], "0")) // digits
	if hour < 1 || hour > 12 || minute > 59 {
		return time.Time{}
	}
	hour %= 12
	if strings.EqualFold(m[3], "pm") {
		hour += 12
	}
	day := now.In(loc)
	at := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, loc)
	if !at.After(now) && now.Sub(at) < justOver {
		return time.Time{}
	}
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return believed(at, now)
}

// ofText returns the class of an error known only by its message, or other.
func ofText(text string, other Class) (Class, string) {
	why := clip(text, maxWhy)
	text, _, _ = strings.Cut(text, ", url: ") // ignore the URL
	if m := find(`(?i)unexpected status (\d{3})\b`, text); m != nil {
		status, _ := strconv.Atoi(m[1]) // digits
		if find(`(?i)quota exceeded|insufficient_quota`, text) == nil && status != 400 {
			return ofStatus(status), why
		}
	}
	for _, known := range []struct {
		class Class
		words string
	}{
		{Fatal, `(?i)not logged in|please run /login|invalid api key|missing environment variable|quota ` +
			`exceeded|insufficient_quota|credit balance is too low|check your plan and billing|unauthorized|authentication[ ` +
			`_](?:failed|error|required)|model .{0,80}(?:not found|does not exist|not supported)|no such file or ` +
			`directory.*(?:` + strings.Join(Names(), "|") + `)|unknown (?:option|argument)|unexpected argument`},
		{UsageLimit, `(?i)usage limit|usage_limit|rate.?limit|too many requests|\b429\b|hit your limit`},
		{Work, `(?i)prompt is too long|context (?:window|length)|maximum context|input is too long`},
	} {
		if find(known.words, text) != nil {
			return known.class, why
		}
	}
	return other, why
}

func find(pattern, text string) []string {
	if len(text) > maxWhy {
		text = text[:maxWhy]
	}
	return regexp.MustCompile(pattern).FindStringSubmatch(text)
}
