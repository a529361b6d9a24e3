// Answers what path.Match says: reads pairs of a pattern and a name, each with its length in four bytes before it, and
// writes a byte for each pair: 1 match, 0 no match, e bad pattern.
package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"path"
)

func main() {
	in := bufio.NewReader(os.Stdin)
	for {
		pattern, err := text(in)
		if err != nil {
			return
		}
		name, err := text(in)
		if err != nil {
			return
		}
		answer := byte('0')
		if matched, err := path.Match(pattern, name); err != nil {
			answer = 'e'
		} else if matched {
			answer = '1'
		}
		if _, err := os.Stdout.Write([]byte{answer}); err != nil {
			return
		}
	}
}

func text(in io.Reader) (string, error) {
	var length uint32
	if err := binary.Read(in, binary.LittleEndian, &length); err != nil {
		return "", err
	}
	bytes := make([]byte, length)
	_, err := io.ReadFull(in, bytes)
	return string(bytes), err
}
