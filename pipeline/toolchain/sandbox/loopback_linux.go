package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// raiseLoopback turns on the loopback interface of this network namespace, which is off in a new one.
func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("turn on loopback: %w", err)
	}
	defer closeFD(socket)
	loopback, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, loopback)
	}
	if err == nil {
		loopback.SetUint16(loopback.Uint16() | unix.IFF_UP)
		err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback)
	}
	if err != nil {
		return fmt.Errorf("turn on loopback: %w", err)
	}
	return nil
}
