package strictjson

import (
	"errors"
	"fmt"
)

// Value reads the strict JSON value that data begins with, whatever follows it. n is how far it
// could be read: where the state is Whole, its length. member says that a key and its colon were
// read: what goes wrong behind one is JSON that is wrong, and no mere brace in a text.
func Value(data []byte) (n int, member bool, state State, err error) {
	p := parser{data: data}
	err = p.value()
	switch {
	case err == nil:
		return p.at, p.member, Whole, nil
	case errors.Is(err, errEnd):
		return p.at, p.member, Partial, fmt.Errorf("not whole: it ends after %d bytes in the middle of the JSON", len(data))
	}
	return p.at, p.member, Bad, err
}
