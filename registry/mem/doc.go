// Package mem implements the storage ports of the registry in maps: the executable
// specification that the durable implementations are held against, and a store for
// tests and dry runs. Nothing outlives the process.
package mem
