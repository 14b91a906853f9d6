package serve

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"sluice/internal/console"
)

// newLogger returns the daemon's log: lines for people on a terminal, else JSON, with a priority
// for journald.
func newLogger(con *console.Console, w io.Writer) zerolog.Logger {
	if _, ok := console.Terminal(w); ok {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !con.ColourOn(w), TimeFormat: time.TimeOnly}
	} else if f, ok := w.(*os.File); ok && toJournal(f, con.Getenv("JOURNAL_STREAM")) {
		w = leveled{w}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}

// leveled writes journald's priority before each line, so that `journalctl -p warning` works.
type leveled struct{ io.Writer }

// WriteLevel writes a line with its priority, in one write: no other writer's line comes between.
func (w leveled) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	n, err := w.Write(append([]byte(priority(level)), p...))
	return max(0, n-len(priority(level))), err
}

func priority(level zerolog.Level) string {
	switch level {
	case zerolog.TraceLevel, zerolog.DebugLevel:
		return "<7>"
	case zerolog.WarnLevel:
		return "<4>"
	case zerolog.ErrorLevel:
		return "<3>"
	case zerolog.FatalLevel, zerolog.PanicLevel:
		return "<2>"
	}
	return "<6>"
}
