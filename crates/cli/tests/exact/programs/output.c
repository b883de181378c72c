// What a program writes: the descriptor and the number of bytes, by every call of the family.
//
// watch: output
// build: gcc -O1 -g
// build: gcc -O1 -s

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int main(void)
{
    int file = open("written", O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, 40);
    int ends[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    dup2(ends[0], 41);
    struct iovec parts[] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    struct mmsghdr messages[] = {{message, 0}, {message, 0}};

    write(1, "hello\n", 6);                     // expect: output 6 to 1
    write(2, "", 0);                            // expect: output 0 to 2
    write(40, "0123456789", 10);                // expect: output 10 to 40
    pwrite(40, "xyz", 3, 4);                    // expect: output 3 to 40
    writev(40, parts, 3);                       // expect: output 5 to 40
    pwritev(40, parts, 1, 0);                   // expect: output 2 to 40
    pwritev2(40, parts, 3, 0, 0);               // expect: output 5 to 40
    send(41, "abc", 3, 0);                      // expect: output 3 to 41
    sendto(41, "abcd", 4, 0, NULL, 0);          // expect: output 4 to 41
    sendmsg(41, &message, 0);                   // expect: output 5 to 41
    sendmmsg(41, messages, 2, 0);               // expect: output 10 to 41
    lseek(40, 0, SEEK_SET);
    sendfile(41, 40, NULL, 7);                  // expect: output 7 to 41
    copy_file_range(40, (loff_t[]){0}, 40, (loff_t[]){100}, 8, 0); // expect: output 8 to 40
    // Buffered: the library writes when it likes.
    printf("one ");
    printf("two\n");
    fflush(stdout);                             // expect: output 8 to 1
    // Fails, and was about to be written all the same.
    write(-1, "x", 1);                          // expect: output 1 to -1
    return 0;
}
