package main

import (
	"bytes"
	"net"
	"os"
	"time"
)

// envAsk makes the test binary a program that sends its standard input to this socket,
// and writes what is answered at first.
const envAsk = "HEARTBEAT_TEST_ASK"

func askSocket(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	var in bytes.Buffer
	_, _ = in.ReadFrom(os.Stdin)
	if _, err := in.WriteTo(conn); err != nil {
		return err
	}
	answer := make([]byte, 4<<10)
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	n, err := conn.Read(answer)
	if n == 0 {
		return err
	}
	_, err = os.Stdout.Write(answer[:n])
	return err
}
