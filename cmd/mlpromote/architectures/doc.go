// Package architectures tests the program on architectures that others wrote: models of torchvision and
// transformers, exported by torch, go through init, build, verify, promote and pull with every runtime
// and precision, and a script that has nothing of ours loads what was pulled and compares it with what
// torch computes. The long form is TestLargeArchitectures; make architectures writes its page. go test
// does the same with two models of their shape.
package architectures
