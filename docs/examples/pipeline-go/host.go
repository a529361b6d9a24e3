package main

import (
	"encoding/json"
	"fmt"
	"unsafe"
)

// What the host writes through the state pointer.
const (
	stateOK       = 0
	stateNotFound = 3
)

// The host's function. A string or a buffer is one number: its address in the high 32 bits, its length in the low ones.
//
//go:wasmimport host k8s_lookup
func k8sLookup(state unsafe.Pointer, name, namespace, kind, apiVersion uint64) uint64

// Memory that the host has asked for, by address: kept here so that the garbage collector leaves it alone until the
// answer in it has been taken.
var blocks = map[uint32][]byte{}

// malloc is called by the host, in the middle of k8sLookup, for memory to put its answer in.
//
//go:wasmexport malloc
func malloc(size uint32) uint64 {
	if size == 0 {
		return 0
	}
	block := make([]byte, size)
	at := uint32(uintptr(unsafe.Pointer(&block[0])))
	blocks[at] = block
	return uint64(at)<<32 | uint64(size)
}

func take(buffer uint64) []byte {
	at := uint32(buffer >> 32)
	block := blocks[at]
	delete(blocks, at)
	return block
}

// pack hides the text from the garbage collector, which is fine: nothing is collected before the host has read it, since
// nothing is allocated before.
func pack(text string) uint64 {
	if text == "" {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.StringData(text))))<<32 | uint64(len(text))
}

// state is not on the stack: a stack may move while the host is asking for memory.
var state uint32

// lookup reads an object into the given value and says whether it exists.
func lookup(into any, apiVersion, kind, namespace, name string) (bool, error) {
	state = stateOK
	answer := take(k8sLookup(unsafe.Pointer(&state), pack(name), pack(namespace), pack(kind), pack(apiVersion)))
	switch state {
	case stateOK:
		return true, json.Unmarshal(answer, into)
	case stateNotFound:
		return false, nil
	default:
		return false, fmt.Errorf("cannot look up %s %s/%s: %s", kind, namespace, name, answer)
	}
}
