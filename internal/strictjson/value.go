package strictjson

// Value reads the strict JSON value that data begins with, whatever follows it. n is how far it
// could be read: where the state is Whole, its length. member says that a key and its colon were
// read: what goes wrong behind one is JSON that is wrong, and no mere brace in a text.
func Value(data []byte) (n int, member bool, state State, err error) {
	p := parser{data: data}
	state, err = p.state(p.value())
	return p.at, p.member, state, err
}
