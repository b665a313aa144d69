# A Slurm of one machine with two nodes and made-up GPUs, in a folder and namespaces of its own; it ends with its shell.
# Call: unshare -n -m -p -f --kill-child --mount-proc sh slurm_lab.sh FOLDER
set -eu
D=$1 H=$(hostname -s) M=$1/munge
export SLURM_CONF="$D/slurm.conf"
ip link set lo up
ip addr add 10.99.0.1/32 dev lo # with 127.0.0.1 alone the nodes find no address
mkdir "$M" "$D/dev"
chmod 700 "$D" "$M"
for i in 0 1 2 3; do mknod "$D/dev/nvidia$i" c 1 3; done # only character devices are given to jobs
cat >"$SLURM_CONF" <<X
ClusterName=lab
SlurmctldHost=$H(10.99.0.1)
SlurmUser=root
AuthInfo=socket=$M/sock
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool_%n
SlurmctldPidFile=$D/ctld.pid
SlurmdPidFile=$D/slurmd_%n.pid
SlurmctldLogFile=$D/ctld.log
SlurmdLogFile=$D/slurmd_%n.log
ProctrackType=proctrack/linuxproc
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
NodeName=n1 NodeHostname=$H NodeAddr=10.99.0.1 Port=27001 CPUs=2 RealMemory=1000 Gres=gpu:h200:2
NodeName=n2 NodeHostname=$H NodeAddr=10.99.0.1 Port=27002 CPUs=2 RealMemory=1000 Gres=gpu:t4:2
PartitionName=debug Nodes=n1,n2 Default=YES State=UP
X
cat >"$D/gres.conf" <<X
NodeName=n1 Name=gpu Type=h200 Flags=nvidia_gpu_env File=$D/dev/nvidia[0-1]
NodeName=n2 Name=gpu Type=t4 Flags=nvidia_gpu_env File=$D/dev/nvidia[2-3]
X
head -c 1024 /dev/urandom >"$M/key"
chmod 400 "$M/key"
munged --force --key-file="$M/key" --socket="$M/sock" --pid-file="$M/pid" --log-file="$M/log" --seed-file="$M/seed" </dev/null
slurmctld -c </dev/null
for n in n1 n2; do slurmd -N $n </dev/null; done
until [ "$(sinfo -h -N -o %T | grep -c idle)" = 2 ]; do sleep 0.1; done
echo up
exec cat # until nobody has its input any more
