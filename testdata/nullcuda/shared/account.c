#include "account.h"
#include "memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCOUNT_MAGIC 0x32436c6c756eull // "nullC2"; changes with the layout of the file

struct nc_account_file {
	uint64_t magic;
	char boot[40]; // /proc/sys/kernel/random/boot_id: a lock held across a power cut has no owner
	pthread_mutex_t mutex;
	uint32_t slot_bytes;
	uint32_t high; // slots at and beyond this one were never used
	struct nc_account_slot slots[NC_ACCOUNT_SLOTS];
};

// Field 22 of /proc/pid/stat, 0 when the process does not exist. A pid alone
// does not name a process: it is reused.
static uint64_t process_start_time(pid_t pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	// The name in parentheses may hold anything, so count fields after the last ')'.
	char *field = strrchr(text, ')');
	if (!field)
		return 0;
	field++;
	for (int i = 3; i <= 22; i++) {
		while (*field == ' ')
			field++;
		if (i == 3 && *field == 'Z')
			return 0;
		if (i < 22)
			field += strcspn(field, " ");
	}
	return strtoull(field, NULL, 10);
}

static int is_usable(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

static int open_path(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && !is_usable(fd)) {
		close(fd);
		fd = -1;
		errno = EPERM;
	}
	return fd;
}

static int open_default(char *path, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	snprintf(path, size, "/dev/shm/nullcuda-%u", (unsigned)geteuid());
	int fd = open_path(path);
	if (fd < 0 && runtime && *runtime) {
		snprintf(path, size, "%s/nullcuda", runtime);
		fd = open_path(path);
	}
	return fd;
}

static void read_boot_id(char boot[40])
{
	memset(boot, 0, 40);
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, boot, 36) < 0)
		boot[0] = 0;
	if (fd >= 0)
		close(fd);
}

static void initialise(struct nc_account_file *file, const char *boot)
{
	pthread_mutexattr_t attr;
	memset((void *)file, 0, sizeof *file);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&file->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	memcpy(file->boot, boot, sizeof file->boot);
	file->slot_bytes = sizeof file->slots[0];
	file->magic = ACCOUNT_MAGIC;
}

// Maps the file and closes the descriptor, initialising a new file or one from
// before the last boot. NULL when the file is not ours to use: made by another
// version, or on a full disk.
static struct nc_account_file *map_file(int fd)
{
	char boot[40];
	struct stat st;
	struct nc_account_file *file = MAP_FAILED;
	if (fd < 0)
		return NULL;
	read_boot_id(boot);
	// flock serialises only this initialisation. It must be dropped by hand: the
	// mapping keeps the open file, and with it the lock, alive beyond the close.
	if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 &&
	    (st.st_size >= (off_t)sizeof *file || (errno = posix_fallocate(fd, 0, sizeof *file)) == 0))
		file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file != MAP_FAILED &&
		(file->magic == 0 || (file->magic == ACCOUNT_MAGIC && memcmp(file->boot, boot, sizeof boot))))
		initialise(file, boot);
	int saved = errno;
	flock(fd, LOCK_UN);
	close(fd);
	errno = saved;
	if (file == MAP_FAILED)
		return NULL;
	if (file->magic != ACCOUNT_MAGIC || file->slot_bytes != sizeof file->slots[0]) {
		munmap(file, sizeof *file);
		errno = EINVAL;
		return NULL;
	}
	return file;
}

// A private account is a named memfd mapping, found again in the process's own
// maps: the driver and NVML libraries of one process share it although neither
// knows the other. The pid in the name keeps a forked child off its parent's.
static struct nc_account_file *find_private(const char *name)
{
	char line[512], want[80];
	unsigned long start;
	struct nc_account_file *found = NULL;
	snprintf(want, sizeof want, "/memfd:%s ", name);
	FILE *maps = fopen("/proc/self/maps", "re");
	while (maps && !found && fgets(line, sizeof line, maps))
		if (strstr(line, want) && sscanf(line, "%lx-", &start) == 1)
			found = (struct nc_account_file *)start;
	if (maps)
		fclose(maps);
	return found;
}

static struct nc_account_file *open_private(void)
{
	char name[64];
	snprintf(name, sizeof name, "nullcuda-%d", getpid());
	struct nc_account_file *file = find_private(name);
	if (!file)
		file = map_file(nc_memfd(name));
	if (file)
		return file;
	file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file == MAP_FAILED) {
		fprintf(stderr, "nullcuda: no memory for the accounting table\n");
		abort();
	}
	initialise(file, (char[40]){0});
	return file;
}

void nc_account_open(struct nc_account *account, const char *shared)
{
	char path[256] = "";
	account->own = NULL;
	if (shared && strcmp(shared, "none") == 0) {
		account->file = open_private();
		return;
	}
	account->file = map_file(shared ? open_path(shared) : open_default(path, sizeof path));
	if (account->file)
		return;
	fprintf(stderr,
	        "nullcuda: cannot use the accounting file %s: %s; memory is accounted per process only. "
	        "Remove it, or set NULLCUDA_SHARED to a writable path or to none\n",
	        shared ? shared : path, strerror(errno));
	account->file = open_private();
}

void nc_account_lock(struct nc_account *account)
{
	// Every update is one store to the holder's own slot, so what a dead holder
	// leaves behind is consistent.
	if (pthread_mutex_lock(&account->file->mutex) == EOWNERDEAD)
		pthread_mutex_consistent(&account->file->mutex);
}

void nc_account_unlock(struct nc_account *account)
{
	pthread_mutex_unlock(&account->file->mutex);
}

static int slot_is_alive(const struct nc_account *account, const struct nc_account_slot *slot)
{
	if (slot == account->own)
		return 1;
	if (kill(slot->pid, 0) < 0 && errno == ESRCH)
		return 0;
	return process_start_time(slot->pid) == slot->start_time;
}

void nc_account_reap(struct nc_account *account)
{
	struct nc_account_file *file = account->file;
	int saved = errno;
	unsigned high = file->high < NC_ACCOUNT_SLOTS ? file->high : NC_ACCOUNT_SLOTS;
	for (unsigned i = 0; i < high; i++) {
		struct nc_account_slot *slot = &file->slots[i];
		if (slot->pid && !slot_is_alive(account, slot))
			memset((void *)slot, 0, sizeof *slot);
	}
	while (high && !file->slots[high - 1].pid)
		high--;
	file->high = high;
	errno = saved;
}

int nc_account_claim(struct nc_account *account)
{
	struct nc_account_file *file = account->file;
	nc_account_reap(account);
	for (unsigned i = 0; i < NC_ACCOUNT_SLOTS; i++) {
		struct nc_account_slot *slot = &file->slots[i];
		// Our own pid without our doing: what this process held before an exec.
		if (slot->pid && slot->pid != getpid())
			continue;
		memset((void *)slot, 0, sizeof *slot);
		slot->start_time = process_start_time(getpid());
		slot->pid = getpid();
		if (i >= file->high)
			file->high = i + 1;
		account->own = slot;
		return 1;
	}
	return 0;
}

uint64_t nc_account_used(const struct nc_account *account, int device)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < account->file->high; i++)
		if (account->file->slots[i].pid)
			sum += account->file->slots[i].used[device];
	return sum;
}

unsigned nc_account_processes(struct nc_account *account, int device, struct nc_account_process *out, unsigned capacity)
{
	unsigned n = 0;
	nc_account_reap(account);
	for (unsigned i = 0; i < account->file->high; i++) {
		const struct nc_account_slot *slot = &account->file->slots[i];
		if (!slot->pid || !slot->contexts[device])
			continue;
		if (n < capacity)
			out[n] = (struct nc_account_process){slot->pid, slot->used[device]};
		n++;
	}
	return n;
}
