#!/bin/sh
# Writes the files of this folder: one synthetic signal in every container and codec that is supported, and some that
# are not. Needs ffmpeg with libopus, libvorbis and libmp3lame. The signal is that of `signal` in src/audio/tests.rs.
set -eu
cd "$(dirname "$0")"
x='0.4*sin(2*PI*(300*t+400*t*t))*(0.6+0.4*sin(6*PI*t))'

# put FILE RATE CHANNELS SECONDS [OPTION...]: the second channel is half as loud as the first, all others are silent.
put() {
    file=$1 rate=$2 channels=$3 seconds=$4
    shift 4
    case $channels in
        1) expr="$x" layout=mono ;;
        2) expr="$x|0.5*$x" layout=stereo ;;
        6) expr="$x|0.5*$x|0|0|0|0" layout=5.1 ;;
    esac
    ffmpeg -y -loglevel error -f lavfi -i "aevalsrc=exprs=$expr:s=$rate:d=$seconds:c=$layout" \
        -map_metadata -1 -fflags +bitexact -flags:a +bitexact "$@" "$file"
}

put s16.wav 8000 1 0.5
put alaw.wav 8000 1 0.5 -c:a pcm_alaw
put mulaw.wav 8000 1 0.5 -c:a pcm_mulaw
put adpcm_ms.wav 16000 1 0.5 -c:a adpcm_ms
put adpcm_ima.wav 16000 1 0.5 -c:a adpcm_ima_wav
put rf64.wav 8000 1 0.5 -rf64 always
put s16.aiff 8000 1 0.5
put s16.caf 8000 1 0.5 -c:a pcm_s16be
put alac.m4a 16000 1 0.5 -c:a alac
put stereo.flac 11025 2 0.3 -c:a flac
put flac.ogg 16000 1 0.5 -c:a flac -page_duration 50000
put cbr.mp3 44100 1 2 -c:a libmp3lame -b:a 32k
put vbr.mp3 48000 2 0.5 -c:a libmp3lame -q:a 6
put no_xing.mp3 24000 1 0.5 -c:a libmp3lame -q:a 6 -write_xing 0 -id3v2_version 0
put layer2.mp2 32000 1 0.5 -c:a mp2 -b:a 64k
put vorbis.ogg 44100 2 0.5 -c:a libvorbis -q:a 2 -page_duration 60000
put vorbis.webm 48000 1 0.5 -c:a libvorbis -q:a 2
put aac.m4a 44100 1 0.5 -c:a aac -b:a 48k
put aac.aac 32000 1 0.5 -c:a aac -b:a 48k
put aac.mkv 48000 1 0.5 -c:a aac -b:a 48k
put silk_20ms.opus 48000 1 0.5 -c:a libopus -b:a 12k -application voip -page_duration 60000
put silk_60ms.opus 48000 1 0.5 -c:a libopus -b:a 12k -application voip -frame_duration 60 -page_duration 60000
put hybrid.opus 48000 1 0.5 -c:a libopus -b:a 28k -application voip -page_duration 60000
put celt.opus 48000 2 0.5 -c:a libopus -b:a 64k -application audio -page_duration 60000
put celt_5ms.opus 48000 1 0.3 -c:a libopus -b:a 48k -application lowdelay -frame_duration 5 -page_duration 60000
put surround.opus 48000 6 0.3 -c:a libopus -b:a 96k -mapping_family 1 -page_duration 60000
put opus.webm 48000 2 0.5 -c:a libopus -b:a 48k
put opus.mp4 48000 1 0.5 -c:a libopus -b:a 32k
put ac3.mp4 32000 1 0.2 -c:a ac3 -b:a 32k
put wma.asf 16000 1 0.2 -c:a wmav2 -b:a 24k
ffmpeg -y -loglevel error -f lavfi -i "testsrc=d=0.2:s=32x32:r=5" -c:v mpeg4 -map_metadata -1 -fflags +bitexact \
    -flags:v +bitexact video.mp4

# Every 16th sample that libopus itself decodes, 16-bit little-endian, channels side by side.
for opus in silk_20ms silk_60ms hybrid celt celt_5ms; do
    ffmpeg -y -loglevel error -c:a libopus -i $opus.opus -af "asetnsamples=1,aselect='not(mod(n,16))'" \
        -f s16le $opus.s16le
done
