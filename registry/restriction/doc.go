// Package restriction decides which engines are made from something that an environment forbids.
package restriction
