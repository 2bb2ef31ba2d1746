// A Go program without C: it is linked statically. With an argument: a timer of the kernel, which cannot be virtual.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

func main() {
	began := time.Now()
	done := make(chan int)
	if len(os.Args) > 1 {
		syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, 1, 0, 0)
	}
	for w := 1; w <= 3; w++ {
		go func(w int) {
			for i := 0; i < 1200/w; i++ {
				time.Sleep(time.Duration(w)*time.Second + time.Duration(w)*time.Millisecond/100)
			}
			done <- w
		}(w)
	}
	for w := 1; w <= 3; w++ {
		fmt.Println("worker", <-done, time.Since(began).Round(time.Second))
	}
	c := exec.Command("sh", "-c", "for i in 1 2 3; do sleep 1; echo $i; done")
	p, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		os.Exit(1)
	}
	for s := bufio.NewScanner(p); s.Scan(); {
		fmt.Println("line", s.Text(), time.Since(began).Round(time.Second))
	}
	fmt.Println("child", c.Wait())
	seen := map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}
	for k := range seen {
		fmt.Println("key", k)
	}
	<-time.After(time.Hour - time.Since(began))
	fmt.Println("end", time.Since(began))
}
