//! A chat server on tokio's multi-threaded runtime, and its clients: every line goes to everybody.
//!
//! Tasks move between worker threads; sockets, a broadcast channel, a mutex, a notify and timers are all used.
//!
//! usage: tokio-chat [clients] [lines per client]     prints how many lines arrived

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Mutex, broadcast};

struct Room {
    lines: broadcast::Sender<String>,
    transcript: Mutex<Vec<String>>,
}

async fn serve(stream: TcpStream, room: Arc<Room>) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut said = room.lines.subscribe();
    writer.write_all(b"welcome\n").await?;
    let forward = tokio::spawn(async move {
        while let Ok(line) = said.recv().await {
            if writer.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                break;
            }
        }
    });
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        room.transcript.lock().await.push(line.clone());
        let _ = room.lines.send(line);
    }
    forward.abort();
    Ok(())
}

async fn talk(
    address: std::net::SocketAddr,
    me: usize,
    clients: usize,
    count: usize,
    everybody: Arc<Barrier>,
) -> std::io::Result<usize> {
    let (reader, mut writer) = TcpStream::connect(address).await?.into_split();
    let mut lines = BufReader::new(reader).lines();
    lines.next_line().await?;
    everybody.wait().await;
    let speaker = tokio::spawn(async move {
        for number in 0..count {
            let line = format!("client {me} line {number}\n");
            if writer.write_all(line.as_bytes()).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_micros(50)).await;
        }
        writer
    });
    let mut heard = 0;
    while heard < clients * count && lines.next_line().await?.is_some() {
        heard += 1;
    }
    drop(speaker.await);
    Ok(heard)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let clients = arguments.next().transpose()?.unwrap_or(4);
    let count = arguments.next().transpose()?.unwrap_or(20);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let heard = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let room = Arc::new(Room {
            lines: broadcast::channel(clients * count + 16).0,
            transcript: Mutex::new(Vec::new()),
        });
        let accepting = Arc::clone(&room);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&accepting)));
            }
        });
        let everybody = Arc::new(Barrier::new(clients));
        let talkers: Vec<_> = (0..clients)
            .map(|me| {
                let (heard, everybody) = (Arc::clone(&heard), Arc::clone(&everybody));
                tokio::spawn(async move {
                    let lines = talk(address, me, clients, count, everybody).await?;
                    heard.fetch_add(lines, Ordering::Relaxed);
                    std::io::Result::Ok(())
                })
            })
            .collect();
        for talker in talkers {
            talker.await??;
        }
        server.abort();
        println!("{} said", room.transcript.lock().await.len());
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    println!("{} heard", heard.load(Ordering::Relaxed));
    Ok(())
}
